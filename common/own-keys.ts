/**
 * The only doors to an object whose key is any text. `record[key]` would find `constructor` and `toString` in
 * every object, and an assignment to `__proto__` changes the object's prototype; the lint rule
 * house/no-text-keys forbids both. A table of ours is a Map.
 */

/** What the object itself has under the key; undefined: nothing. */
export function ownValue<V>(record: Readonly<Record<string, V>>, key: string): V | undefined {
  // eslint-disable-next-line house/no-text-keys -- the object has the key itself
  return Object.hasOwn(record, key) ? record[key] : undefined
}

/** Sets the object's own value, whatever the key is called. */
export function setOwn<V>(record: Record<string, V>, key: string, value: V): void {
  if (key === '__proto__') {
    Object.defineProperty(record, key, { value, enumerable: true, writable: true, configurable: true })
  } else {
    // eslint-disable-next-line house/no-text-keys -- every key but __proto__ becomes the object's own
    record[key] = value
  }
}
