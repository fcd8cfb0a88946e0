CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE, value REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
 INSERT INTO t SELECT i, 'name ' || (i * 7919 % 2003), i * 0.5 FROM n;
CREATE INDEX by_value ON t (value DESC);
CREATE TRIGGER after_update AFTER UPDATE ON t BEGIN UPDATE t SET name = name || '+' WHERE id = new.id - 1; END;
UPDATE t SET value = -value WHERE id % 100 = 0;
SELECT count(*), sum(value), min(name), max(name) FROM t;
SELECT id, name, value FROM t WHERE value < 0 ORDER BY value LIMIT 5;
BEGIN; DELETE FROM t WHERE id < 1000; ROLLBACK;
SAVEPOINT s; DELETE FROM t WHERE id > 1500; RELEASE s;
SELECT id, row_number() OVER (ORDER BY value DESC), lag(id) OVER (ORDER BY value DESC) FROM t LIMIT 5;
INSERT INTO t VALUES (1, 'twice', 0);
SELECT json_extract('{"a":[1,2,{"b":3}]}', '$.a[2].b'), printf('%08.3f', 3.14159), hex('Pebble'), abs(-5), 'a' LIKE 'A';
VACUUM;
PRAGMA integrity_check;
SELECT nothing FROM nowhere;
