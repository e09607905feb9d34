(* SPDX-License-Identifier: MIT *)
(* ocaml_kept COUNT PART: keeps every PARTth of COUNT values and some large
   ones, says what the collector says of its heap, and dies. *)
let kept = ref []
let large = ref [||]

let () =
  let count = int_of_string Sys.argv.(1) in
  let part = int_of_string Sys.argv.(2) in
  for i = 1 to count do
    kept := (i, string_of_int i, [| i; i; i |]) :: !kept
  done;
  kept := List.filter (fun (i, _, _) -> i mod part = 0) !kept;
  large := Array.init (count / 1000) (fun i -> Array.make (i * 40 + 1) 0);
  Gc.full_major ();
  let s = Gc.stat () in
  let bytes words = words * (Sys.word_size / 8) in
  Printf.printf "said heap %d live %d minor %d\n%!" (bytes s.Gc.heap_words)
    (bytes s.Gc.live_words) (bytes (Gc.get ()).Gc.minor_heap_size);
  ignore (Sys.command "kill -ABRT $PPID");
  ignore (Sys.opaque_identity (kept, large))
