/**
 * The only access to an object whose keys come from outside. `record[key]` would find `constructor` and
 * `toString` in every object, and an assignment to `__proto__` changes the prototype. The lint rule
 * house/no-text-keys forbids both. Tables of the product are Maps.
 */

/** The own value of the object under the key; undefined if there is none. */
export function ownValue<V>(record: Readonly<Record<string, V>>, key: string): V | undefined {
  // eslint-disable-next-line house/no-text-keys -- the object has the key itself
  return Object.hasOwn(record, key) ? record[key] : undefined
}

/** Sets an own value of the object, whatever the key. */
export function setOwn<V>(record: Record<string, V>, key: string, value: V): void {
  if (key === '__proto__') {
    Object.defineProperty(record, key, { value, enumerable: true, writable: true, configurable: true })
  } else {
    // eslint-disable-next-line house/no-text-keys -- every key but __proto__ becomes the object's own
    record[key] = value
  }
}
