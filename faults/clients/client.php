<?php
// Sends plants one after another on one curl handle, and prints the status of each response.
[, $url, $token, $firstId, $count, $mode] = $argv;
$headers = ["Authorization: Bearer $token", 'Content-Type: application/json'];
if ($mode === 'chunked') $headers[] = 'Transfer-Encoding: chunked';
if ($mode === 'expect') $headers[] = 'Expect: 100-continue';
$handle = curl_init($url);
curl_setopt_array($handle, [CURLOPT_HTTPHEADER => $headers, CURLOPT_RETURNTRANSFER => true]);
for ($id = (int) $firstId; $id < $firstId + $count; $id++) {
    curl_setopt($handle, CURLOPT_POSTFIELDS, json_encode(['id' => $id, 'name' => 'Monstera']));
    if (curl_exec($handle) === false) exit(curl_error($handle));
    echo curl_getinfo($handle, CURLINFO_RESPONSE_CODE), "\n";
}
