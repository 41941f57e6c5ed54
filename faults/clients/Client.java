import java.io.ByteArrayInputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;

/** Sends plants one after another, and prints the status of each response. */
class Client {
  public static void main(String[] args) throws Exception {
    String url = args[0], token = args[1], mode = args[4];
    long firstId = Long.parseLong(args[2]), count = Long.parseLong(args[3]);
    // At its default, which asks for HTTP/2 by `Upgrade: h2c`.
    HttpClient client = HttpClient.newHttpClient();
    for (long id = firstId; id < firstId + count; id++) {
      String body = "{\"id\":" + id + ",\"name\":\"Monstera\"}";
      HttpRequest request = HttpRequest.newBuilder(URI.create(url))
          .header("Authorization", "Bearer " + token)
          .header("Content-Type", "application/json")
          .expectContinue(mode.equals("expect"))
          .POST(mode.equals("chunked")
              ? BodyPublishers.ofInputStream(() -> new ByteArrayInputStream(body.getBytes()))
              : BodyPublishers.ofString(body))
          .build();
      System.out.println(client.send(request, BodyHandlers.ofString()).statusCode());
    }
  }
}
