# Serves this directory over Multipath TCP: http.server with a socket that asks for it.
import http.server
import socket
import sys

IPPROTO_MPTCP = 262


class Server(http.server.ThreadingHTTPServer):
    def __init__(self, address, handler):
        super().__init__(address, handler, bind_and_activate=False)
        self.socket.close()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.server_bind()
        self.server_activate()


Server(("", int(sys.argv[1])), http.server.SimpleHTTPRequestHandler).serve_forever()
