/** Stands for the base address of the service; the page puts its own there. */
export const SAMPLE_ADDRESS = 'https://plants.example';

/** A program that sends a plant with the largest id. */
export interface CodeSample {
  language: string;
  /** How the id keeps its digits there. */
  note: string;
  code: string;
}

const CURL = `export PLANT_STORE_TOKEN='<ACCESS_TOKEN>'
curl -i ${SAMPLE_ADDRESS}/plants \\
  -H "Authorization: Bearer $PLANT_STORE_TOKEN" \\
  -H 'Content-Type: application/json' \\
  -d '{"id": 9223372036854775807, "name": "Ficus lyrata", "tag": "houseplant"}'
`;

const TYPESCRIPT = `import { PlantStore } from 'plant-store/client';

const store = new PlantStore({ url: '${SAMPLE_ADDRESS}' });
const { revision, outcome } = await store.createPlant({
  id: 9223372036854775807n,
  name: 'Ficus lyrata',
  tag: 'houseplant',
});
// outcome is 'created', 'unchanged' or 'revised'
`;

const PYTHON = `import json
import os
import urllib.request

plant = {"id": 9223372036854775807, "name": "Ficus lyrata", "tag": "houseplant"}
request = urllib.request.Request(
    "${SAMPLE_ADDRESS}/plants",
    data=json.dumps(plant).encode(),
    headers={
        "Authorization": f"Bearer {os.environ['PLANT_STORE_TOKEN']}",
        "Content-Type": "application/json",
    },
)
with urllib.request.urlopen(request) as answer:
    print(answer.headers["Plant-Id"], answer.headers["Plant-Outcome"])
`;

const GO = `package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
)

type NewPlant struct {
	ID   int64   \`json:"id"\`
	Name string  \`json:"name"\`
	Tag  *string \`json:"tag,omitempty"\`
}

func main() {
	tag := "houseplant"
	body, err := json.Marshal(NewPlant{ID: 9223372036854775807, Name: "Ficus lyrata", Tag: &tag})
	if err != nil {
		log.Fatal(err)
	}
	request, err := http.NewRequest(http.MethodPost, "${SAMPLE_ADDRESS}/plants", bytes.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("PLANT_STORE_TOKEN"))
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	fmt.Println(answer.Status, answer.Header.Get("Plant-Id"), answer.Header.Get("Plant-Outcome"))
}
`;

const JAVA = `import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

class SendPlant {
    public static void main(String[] arguments) throws Exception {
        long id = 9223372036854775807L;
        String body = "{\\"id\\": " + id + ", \\"name\\": \\"Ficus lyrata\\", \\"tag\\": \\"houseplant\\"}";
        HttpRequest request = HttpRequest.newBuilder(URI.create("${SAMPLE_ADDRESS}/plants"))
            .header("Authorization", "Bearer " + System.getenv("PLANT_STORE_TOKEN"))
            .header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString(body))
            .build();
        HttpResponse<String> answer =
            HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        System.out.println(answer.statusCode() + " " + answer.headers().firstValue("Plant-Id").orElse("no id"));
    }
}
`;

/** In the order in which the page has them. All take the token from the environment variable \`PLANT_STORE_TOKEN\`. */
export const CODE_SAMPLES: readonly CodeSample[] = [
  {
    language: 'curl',
    note: 'The digits go out as they are written.',
    code: CURL,
  },
  {
    language: 'TypeScript',
    note:
      'The n makes the id a bigint; a number holds no integer beyond 9007199254740991 exactly. Text does as well. The ' +
      'client tries again by itself what may pass.',
    code: TYPESCRIPT,
  },
  {
    language: 'Python',
    note: 'An int has as many digits as it needs, and json writes all of them.',
    code: PYTHON,
  },
  {
    language: 'Go',
    note: 'An int64 is exact. Decoded into any, a number becomes a float64 and loses digits.',
    code: GO,
  },
  {
    language: 'Java',
    note: 'A long is exact. A JSON library must not read the id as a double.',
    code: JAVA,
  },
];
