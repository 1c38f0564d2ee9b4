import { expect, test } from '@jest/globals'
import { ownValue, setOwn } from '../../common/json.ts'

test.each(['constructor', 'toString', '__proto__', 'hasOwnProperty'])(
  '%s is a key like any other: absent until it is set, then with its value',
  (key) => {
    const record: Record<string, unknown> = {}
    expect(ownValue(record, key)).toBeUndefined()
    const value = { admin: true }
    setOwn(record, key, value)
    expect(ownValue(record, key)).toBe(value)
    expect(Object.keys(record)).toEqual([key])
    expect(Object.getPrototypeOf(record)).toBe(Object.prototype)
  },
)
