"""The verbs as tools of the Model Context Protocol, over standard input and output, or at /mcp of a server."""
