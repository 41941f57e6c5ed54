# Sends plants one after another, and prints the status of each response.
require 'json'
require 'net/http'
require 'stringio'

url, token, first_id, count, mode = ARGV
uri = URI(url)
Net::HTTP.start(uri.host, uri.port, continue_timeout: mode == 'expect' ? 1 : nil) do |http|
  count.to_i.times do |index|
    body = JSON.generate(id: first_id.to_i + index, name: 'Monstera')
    request = Net::HTTP::Post.new(uri, 'Authorization' => "Bearer #{token}", 'Content-Type' => 'application/json')
    request['Expect'] = '100-continue' if mode == 'expect'
    if mode == 'chunked'
      request['Transfer-Encoding'] = 'chunked'
      request.body_stream = StringIO.new(body)
    else
      request.body = body
    end
    puts http.request(request).code
  end
end
