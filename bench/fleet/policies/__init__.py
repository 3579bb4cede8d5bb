"""What a fleet may be briefed by. A policy sees what agents write and tell, never the world."""
