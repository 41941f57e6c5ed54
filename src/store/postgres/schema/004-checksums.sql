-- Never edited after its release. A later change is a later file.

-- See src/store/checksum.ts.
ALTER TABLE plant_revision ADD COLUMN checksum bigint;

UPDATE plant_revision SET checksum = ('x' || left(encode(sha256(convert_to(
    left(encode(sha256(
      convert_to(id::text, 'UTF8') || '\x00' || convert_to(name, 'UTF8')
        || coalesce('\x00' || convert_to(tag, 'UTF8'), '')
    ), 'hex'), 16) || ',' || revision || ',' || recorded_at || ',' || recorded_by, 'UTF8'
  )), 'hex'), 16))::bit(64)::bigint;

ALTER TABLE plant_revision ALTER COLUMN checksum SET NOT NULL;
