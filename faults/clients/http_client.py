"""Sends plants one after another, and prints the status of each response."""

import json
import sys
from http.client import HTTPConnection
from urllib.parse import urlsplit

url, token, first_id, count, mode = sys.argv[1:]
headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
if mode == "expect":
    # http.client sends the body without waiting for 100.
    headers["Expect"] = "100-continue"
connection = HTTPConnection(urlsplit(url).netloc)
for plant_id in range(int(first_id), int(first_id) + int(count)):
    body = json.dumps({"id": plant_id, "name": "Monstera"}).encode()
    # The length of an iterator is not known, so it is sent in chunks.
    connection.request("POST", urlsplit(url).path, iter([body]) if mode == "chunked" else body, headers)
    response = connection.getresponse()
    response.read()
    print(response.status)
