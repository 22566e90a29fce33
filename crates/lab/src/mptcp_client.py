# Fetches a file over Multipath TCP; prints the times of its first and its last byte, as curl does.
import socket
import sys
import time

IPPROTO_MPTCP = 262
host, port, name, copy, patience = sys.argv[1:]
begin = time.monotonic()
with socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP) as connection, open(copy, "wb", buffering=0) as file:
    connection.settimeout(float(patience))
    connection.connect((host, int(port)))
    connection.sendall(f"GET /{name} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            sys.exit("the server closed the connection")
        data += more
    first = time.monotonic()
    head, data = data.split(b"\r\n\r\n", 1)
    if b" 200 " not in head.split(b"\r\n", 1)[0]:
        sys.exit(head.decode(errors="replace"))
    length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    arrived = 0
    while True:
        file.write(data)
        arrived += len(data)
        if arrived >= length:
            break
        data = connection.recv(65536)
        if not data:
            sys.exit(f"{arrived} of {length} bytes arrived")
    print(first - begin, time.monotonic() - begin)
