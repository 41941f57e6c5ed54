"""Sends one plant with urllib, which Python brings.

    export PLANT_STORE_URL=http://127.0.0.1:8080 PLANT_STORE_TOKEN=plant_...
    python3 send_plant.py 9007199254740993 'Monstera deliciosa' houseplant
"""

import json
import os
import sys
from urllib.error import HTTPError
from urllib.request import Request, urlopen

if len(sys.argv) not in (3, 4):
    sys.exit("Usage: python3 send_plant.py ID NAME [TAG]")
# A Python integer is exact at any size, and so is its JSON.
plant = {"id": int(sys.argv[1]), "name": sys.argv[2]}
if len(sys.argv) == 4:
    plant["tag"] = sys.argv[3]

request = Request(
    os.environ["PLANT_STORE_URL"] + "/plants",
    data=json.dumps(plant).encode(),
    headers={
        "Authorization": "Bearer " + os.environ["PLANT_STORE_TOKEN"],
        "Content-Type": "application/json",
    },
)
try:
    # Without a timeout, urllib waits forever.
    with urlopen(request, timeout=30) as response:
        headers = response.headers
except HTTPError as failed:
    sys.exit(f"{failed.code}: {json.load(failed)['message']}")
print(f"{headers['Plant-Outcome']} plant {headers['Plant-Id']}, revision {headers['Plant-Revision']}")
