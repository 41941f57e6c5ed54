"""Sends plants one after another, and prints the status of each response."""

import json
import sys
from requests import Session

url, token, first_id, count, mode = sys.argv[1:]
session = Session()
session.headers.update({"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
if mode == "expect":
    # requests sends the body without waiting for 100.
    session.headers["Expect"] = "100-continue"
for plant_id in range(int(first_id), int(first_id) + int(count)):
    body = json.dumps({"id": plant_id, "name": "Monstera"}).encode()
    # The length of an iterator is not known, so it is sent in chunks.
    print(session.post(url, data=iter([body]) if mode == "chunked" else body).status_code)
