import { expect, test } from '@jest/globals'
import type { Model } from '../../frontend/models/model.ts'
import { Registry } from '../../frontend/models/registry.ts'
import type { ServeError } from '../../common/errors.ts'

function model(name: string, version: string): Model {
  return { name, version, queue: {} } as unknown as Model
}

function registryOf(...models: Model[]): Registry {
  const registry = new Registry()
  for (const each of models) registry.put(each)
  return registry
}

function codeOf(action: () => unknown): string {
  try {
    action()
  } catch (error) {
    return (error as ServeError).code
  }
  return 'no error'
}

const [a1, a2, a3, b1] = [model('a', '1.0'), model('a', '2.0'), model('a', '3.0'), model('b', '1.0')]

test('the first version of a name is its default until another is chosen', () => {
  const registry = registryOf(a1, a2, b1)
  expect([registry.get('a'), registry.get('a', '2.0')]).toEqual([a1, a2])
  registry.setDefault('a', '2.0')
  expect([registry.get('a'), registry.defaults()]).toEqual([a2, [a2, b1]])
  expect(codeOf(() => registry.setDefault('a', '9'))).toBe('VERSION_NOT_FOUND')
  expect(registry.get('a')).toBe(a2)
})

test('the number of a version is taken by one model', () => {
  const registry = registryOf(a1)
  expect(codeOf(() => registry.checkFree('a', '1.0'))).toBe('CONFLICT')
  expect([registry.get('a'), registry.all()]).toEqual([a1, [a1]])
})

test('a default version beside others cannot be removed; the last one can', () => {
  const registry = registryOf(a1, a2)
  expect(codeOf(() => registry.remove('a'))).toBe('DEFAULT_VERSION')
  expect(codeOf(() => registry.remove('a', '1.0'))).toBe('DEFAULT_VERSION')
  expect([registry.remove('a', '2.0'), registry.remove('a')]).toEqual([a2, a1])
  expect([registry.all(), codeOf(() => registry.get('a'))]).toEqual([[], 'MODEL_NOT_FOUND'])
})

test('a discarded default gives way to another version, the last one takes its name along', () => {
  const registry = registryOf(a1, a2, a3)
  registry.discard(a1)
  expect([registry.get('a'), registry.versions('a')]).toEqual([a2, [a2, a3]])
  registry.discard(a3)
  expect(registry.get('a')).toBe(a2)
  registry.discard(a2)
  expect(codeOf(() => registry.versions('a'))).toBe('MODEL_NOT_FOUND')
})

test('discarding a version that was replaced leaves the one in its place', () => {
  const registry = registryOf(a1)
  const newer = model('a', '1.0')
  expect([registry.put(newer), registry.put(newer)]).toEqual([a1, undefined])
  registry.discard(a1)
  expect(registry.get('a')).toBe(newer)
})

test('an unknown name is told back in part only', () => {
  const name = 'x'.repeat(10_000)
  expect(() => registryOf().get(name)).toThrow(`Model not found: ${'x'.repeat(200)}`)
  expect(() => registryOf().get(name)).not.toThrow('x'.repeat(201))
})
