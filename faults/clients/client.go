// Sends plants one after another, and prints the status of each response.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
)

func main() {
	url, token, mode := os.Args[1], os.Args[2], os.Args[5]
	firstID, _ := strconv.Atoi(os.Args[3])
	count, _ := strconv.Atoi(os.Args[4])
	for id := firstID; id < firstID+count; id++ {
		var body io.Reader = strings.NewReader(fmt.Sprintf(`{"id":%d,"name":"Monstera"}`, id))
		if mode == "chunked" {
			// Hides the length.
			body = io.NopCloser(body)
		}
		request, err := http.NewRequest("POST", url, body)
		if err != nil {
			panic(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set("Content-Type", "application/json")
		if mode == "expect" {
			// The default transport waits for 100 for at most a second.
			request.Header.Set("Expect", "100-continue")
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			panic(err)
		}
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
		fmt.Println(response.StatusCode)
	}
}
