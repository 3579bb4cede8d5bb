"""The toy service: /search answers notes and checks their order, /health says that somebody is there. Logs JSON lines to a file.

usage: server.py PORT LOGFILE REVISION
"""

import json
import sys
import time
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from search import search

PORT, LOG, REVISION = int(sys.argv[1]), sys.argv[2], sys.argv[3]


def log(severity, message):
    with open(LOG, "a", encoding="utf-8") as file:
        file.write(json.dumps({"time": time.time(), "severity": severity, "message": message, "revision": REVISION}) + "\n")


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        status, answer = 200, {"status": "ok", "revision": REVISION}
        if self.path.startswith("/search"):
            status, answer = self.searched("load" in self.path)
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def searched(self, under_load):
        try:
            found = search(under_load)
            assert found[0]["confidence"] == max(note["confidence"] for note in found), (
                "search returned the least trusted entry first"
            )
        except AssertionError:
            log("ERROR", "Exception on /search [GET]\n" + traceback.format_exc().strip())
            return 500, {"error": "internal"}
        log("INFO", "GET /search 200")
        return 200, {"notes": found}

    def log_message(self, *words):
        """The service logs by itself."""


server = ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
log("INFO", f"revision {REVISION} serves on {PORT}")
server.serve_forever()
