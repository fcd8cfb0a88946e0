;; What the crossings of wasm sandboxes are measured with.
(module
  (import "host" "null" (func $host_null))
  (memory (export "memory") 1)
  (func (export "null"))
  (func (export "add") (param i64 i64 i64 i64 i64 i64) (result i64)
    (i64.add (local.get 0) (i64.add (i64.add (local.get 1) (local.get 2))
      (i64.add (i64.add (local.get 3) (local.get 4)) (local.get 5)))))
  (func (export "back") (param i32)
    (loop $again
      (call $host_null)
      (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))))
