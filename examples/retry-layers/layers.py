"""Sends plants with requests and urllib3, for measure.mjs. See layers.mjs for its input and output."""

import os
import re
import sys

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

session = requests.Session()
if sys.argv[1].endswith("with POST"):
    retry = Retry(total=2, allowed_methods=["POST"], status_forcelist=[408, 429, 500, 503], backoff_factor=0.5)
    session.mount("http://", HTTPAdapter(max_retries=retry))

for line in sys.stdin:
    plant_id, prefer = line.rstrip("\n").split("\t")
    headers = {
        "Authorization": "Bearer " + os.environ["PLANT_STORE_TOKEN"],
        "Content-Type": "application/json",
        "Prefer": prefer,
    }
    body = f'{{"id":{plant_id},"name":"Plant {plant_id}"}}'
    try:
        response = session.post(os.environ["PLANT_STORE_URL"] + "/plants", data=body, headers=headers, timeout=1)
        learnt = f"{response.status_code} {response.text}"
    except requests.RequestException as error:
        learnt = f"error {error}"
    print(plant_id, re.sub(r"\s", " ", learnt), sep="\t", flush=True)
