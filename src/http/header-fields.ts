/**
 * Lists the values of a header field, in order.
 *
 * Node's own `headers` keeps one Authorization, Host or Content-Type of several and drops the rest unseen.
 *
 * @param rawHeaders names and values in turn, as Node gives them
 * @param name of the field, in lower case
 */
export function fieldValues(rawHeaders: readonly string[], name: string): string[] {
  const values: string[] = [];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const field = rawHeaders[index]!;
    // The length first: this runs over every field of every request.
    if (field.length === name.length && field.toLowerCase() === name) values.push(rawHeaders[index + 1]!);
  }
  return values;
}
