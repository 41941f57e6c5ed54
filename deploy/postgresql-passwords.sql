-- Passwords of the two roles, from the secrets of compose.yaml.
\set owner `cat /run/secrets/owner-password`
\set service `cat /run/secrets/service-password`
ALTER ROLE plant_owner PASSWORD :'owner';
ALTER ROLE plant_service PASSWORD :'service';
