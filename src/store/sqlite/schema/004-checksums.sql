-- Never edited after its release. A later change is a later file.

-- See src/store/checksum.ts. The program defines revision_checksum for this step.
DROP TRIGGER plant_revision_is_not_updated;

ALTER TABLE plant_revision ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;

UPDATE plant_revision SET checksum = revision_checksum(id, revision, name, tag, recorded_at, recorded_by);

CREATE TRIGGER plant_revision_is_not_updated BEFORE UPDATE ON plant_revision
BEGIN
  SELECT RAISE(ABORT, 'plant_revision is append-only: send the plant again to correct it');
END;
