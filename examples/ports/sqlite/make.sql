-- Tables, transactions, indices, triggers, views, and what must fail.
create table person(id integer primary key, name text not null unique, born integer check(born > 1000));
create table work(id integer primary key, title text, by integer references person(id) on delete cascade, price real);
create index work_by on work(by, price);
create view listed as select name, title, price from work join person on person.id = work.by;
create table log(what text);
create trigger sold after delete on work begin insert into log values('gone: ' || old.title); end;
pragma foreign_keys = on;
insert into person(name, born) values('Ada', 1815), ('Grace', 1906), ('Alan', 1912);
insert into work(title, by, price) values('Notes', 1, 12.5), ('Compiler', 2, 99), ('Machine', 3, 0.125), ('Game', 3, 7e-5);
insert into person(name) values('Ada');
insert into person(name, born) values('Nero', 37);
insert into work(title, by) values('Nothing', 77);
.mode box
select * from listed order by price desc;
.mode list

begin;
update work set price = price * 2;
delete from person where name = 'Alan';
select count(*), total(price) from work;
rollback;
select count(*), total(price) from work;
select * from log;

begin;
delete from work where title = 'Game';
savepoint inner;
delete from work;
rollback to inner;
commit;
select * from log;

-- Enough to be in many pages, and to be sorted on disk.
create table number(n integer primary key, square integer, word text);
with recursive c(n) as (select 1 union all select n + 1 from c where n < 3000)
    insert into number select n, n * n, printf('%05d-%s', (n * 7919) % 3001, hex(n)) from c;
create index by_word on number(word);
select count(*), sum(square), min(word), max(word) from number;
select n, word from number order by word limit 3;
explain query plan select n from number where word between '00100' and '00103';
select n, word from number where word between '00100' and '00103';
delete from number where n % 3 = 0;
update number set word = upper(word) || '!' where n % 5 = 0;
select count(*), sum(length(word)) from number;

-- Functions, windows, JSON, dates, numbers.
select group_concat(name, '|'), avg(born), round(avg(born), 2) from person;
select name, rank() over (order by born desc), sum(born) over (order by id) from person;
select json_extract('{"a": [1, 2.5, {"b": null}]}', '$.a[1]'), json_array(1, 'two', null), json_group_array(name) from person;
select date('2024-02-28', '+2 days'), strftime('%j %H:%M', '2000-12-31 23:59:00'), julianday('2000-01-01');
select 1 / 3, 1.0 / 3, 1e308 * 10, -9223372036854775808, 9223372036854775807 + 1, 0.1 + 0.2, cast('12ab' as integer), 7 % -3;
select quote(x'00ff'), typeof(null), 'a' like 'A', 'abc' glob 'a*', instr('hello', 'l'), replace('aXbX', 'X', '--'), substr('héllo', 2, 3);
select printf('%8.3f|%-6d|%x|%e', 3.14159, 42, 255, 12345.678);
select abs(-9223372036854775808);
select nosuch from person;
pragma integrity_check;
vacuum;
pragma integrity_check;
pragma page_count;
