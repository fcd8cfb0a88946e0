-- Of the file that make.sql has made.
pragma integrity_check;
.tables
.schema work
select name, title from listed order by title;
select count(*), sum(square), sum(length(word)) from number;
begin;
delete from number;
drop table log;
rollback;
select count(*) from number;
select count(*) from log;
attach ':memory:' as other;
create table other.copy as select * from number where n < 100;
select count(*), sum(n) from other.copy;
pragma journal_mode = persist;
insert into log values('in another session');
pragma journal_mode = truncate;
insert into log values('and once more');
.mode csv
select * from log;
.dump person
drop table number;
vacuum;
pragma page_count;
pragma integrity_check;
