-- Two roles for a plant store on PostgreSQL 15 or later: the owner makes the tables and the tokens, the service takes
-- plants and can neither change nor delete one.

-- Part 1, as a superuser. Then give each role a password: \password plant_owner and \password plant_service in psql.

CREATE ROLE plant_owner LOGIN;
CREATE ROLE plant_service LOGIN;
CREATE DATABASE plants OWNER plant_owner ENCODING 'UTF8' TEMPLATE template0;

-- Part 2, as plant_owner in the database plants, once its first command has made the tables: one of
--   npx plant-store copy --from sqlite:./data/plant-store.db --to postgres://plant_owner@HOST/plants
--   npx plant-store token create LABEL --database postgres://plant_owner@HOST/plants
-- To be run again after an upgrade that adds a table; nothing happens to rights that are there already.

REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO plant_service;
GRANT SELECT ON schema_step TO plant_service;
GRANT SELECT, INSERT ON plant_revision TO plant_service;
GRANT SELECT ON plant TO plant_service;
GRANT SELECT, UPDATE (last_used_day) ON token TO plant_service;
