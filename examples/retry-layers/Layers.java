import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.HttpURLConnection;
import java.net.URL;
import java.nio.charset.StandardCharsets;

/** Sends plants with HttpURLConnection, for measure.mjs. See layers.mjs for its input and output. */
public class Layers {
    public static void main(String[] args) throws IOException {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] parts = line.split("\t", -1);
            System.out.println(parts[0] + "\t" + send(parts[0], parts[1]).replaceAll("\\s", " "));
        }
    }

    private static String send(String id, String prefer) {
        try {
            URL url = new URL(System.getenv("PLANT_STORE_URL") + "/plants");
            HttpURLConnection connection = (HttpURLConnection) url.openConnection();
            connection.setRequestMethod("POST");
            connection.setDoOutput(true);
            connection.setReadTimeout(1000);
            connection.setRequestProperty("Authorization", "Bearer " + System.getenv("PLANT_STORE_TOKEN"));
            connection.setRequestProperty("Content-Type", "application/json");
            connection.setRequestProperty("Prefer", prefer);
            String body = "{\"id\":" + id + ",\"name\":\"Plant " + id + "\"}";
            connection.getOutputStream().write(body.getBytes(StandardCharsets.UTF_8));
            int status = connection.getResponseCode();
            InputStream stream = status < 400 ? connection.getInputStream() : connection.getErrorStream();
            return status + " " + new String(stream.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException error) {
            return "error " + error;
        }
    }
}
