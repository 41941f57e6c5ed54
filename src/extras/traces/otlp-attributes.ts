/** Attributes in the JSON form of OTLP. */
export type Attributes = { key: string; value: { intValue: string } | { stringValue: string } }[];

/** Leaves out attributes that are undefined. An int64 is a string in ProtoJSON. */
export function attributesOf(values: Record<string, string | number | undefined>): Attributes {
  return Object.entries(values).flatMap(([key, value]) => {
    if (value === undefined) return [];
    return [{ key, value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value } }];
  });
}
