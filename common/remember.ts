/** Keeps an entry as the newest of at most `max`; the one that was kept longest ago makes room. */
export function remember<Key, Value>(map: Map<Key, Value>, max: number, key: Key, value: Value): void {
  map.delete(key)
  map.set(key, value)
  if (map.size <= max) return
  const [oldest] = map.keys()
  map.delete(oldest!)
}
