-- The rights of the service. Run this as plant_owner after the tables exist, and again after an upgrade that adds one.
-- Running it twice does no harm.
--   psql -f docs/postgresql-grants.sql -h HOST -U plant_owner plants
-- The owner's first command creates the tables. To move a store:
--   npx plant-store copy --from sqlite:./data/plant-store.db --to postgres://plant_owner@HOST/plants
-- For an empty store, but never before a copy:
--   npx plant-store token create LABEL --database postgres://plant_owner@HOST/plants

REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO plant_service;
GRANT SELECT ON plant_schema_step TO plant_service;
GRANT SELECT, INSERT ON plant_revision TO plant_service;
GRANT SELECT ON plant TO plant_service;
GRANT SELECT, UPDATE (last_used_day) ON token TO plant_service;
GRANT SELECT, INSERT, DELETE ON console_code TO plant_service;
GRANT SELECT, INSERT, DELETE, UPDATE (expires_at) ON console_session TO plant_service;
GRANT SELECT, INSERT, UPDATE ON last_run TO plant_service;
GRANT SELECT, INSERT, UPDATE ON known_damage TO plant_service;
-- Only for --oidc-issuer, which adds a row for each subject:
--   GRANT INSERT ON token TO plant_service;
