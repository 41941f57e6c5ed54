// Sends plants with net/http, for measure.mjs. See layers.mjs for its input and output.
package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

var client = http.Client{Timeout: time.Second}

func send(id string, prefer string) (string, error) {
	body := strings.NewReader(fmt.Sprintf(`{"id":%s,"name":"Plant %s"}`, id, id))
	request, err := http.NewRequest("POST", os.Getenv("PLANT_STORE_URL")+"/plants", body)
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("PLANT_STORE_TOKEN"))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Prefer", prefer)
	// With this field, net/http may send a POST again.
	if os.Args[1] == "net/http with POST" {
		request.Header.Set("Idempotency-Key", id)
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return fmt.Sprintf("%d %s", response.StatusCode, text), err
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		id, prefer, _ := strings.Cut(lines.Text(), "\t")
		learnt, err := send(id, prefer)
		if err != nil {
			learnt = "error " + err.Error()
		}
		fmt.Println(id + "\t" + strings.Join(strings.Fields(learnt), " "))
	}
}
