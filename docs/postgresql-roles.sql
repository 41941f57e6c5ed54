-- Two roles for a plant store on PostgreSQL 15 or later. The owner creates tables and tokens. The service adds plants, and
-- cannot change or delete one. Run this once, as a superuser or another role that may create roles and databases:
--   psql -f docs/postgresql-roles.sql postgres
-- On Citus use the statements in docs/scale.md instead, on each server.
-- Then give each role a password: \password plant_owner and \password plant_service in psql.

CREATE ROLE plant_owner LOGIN;
CREATE ROLE plant_service LOGIN;
GRANT plant_owner TO CURRENT_USER;
CREATE DATABASE plants OWNER plant_owner ENCODING 'UTF8' TEMPLATE template0;
