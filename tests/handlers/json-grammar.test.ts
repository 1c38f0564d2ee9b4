import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { getLlama, type Llama } from 'node-llama-cpp'
import { JsonGrammar } from '../../handlers/gguf/json-grammar.ts'

let llama: Llama

beforeAll(async () => {
  llama = await getLlama({ gpu: false, build: 'never', skipDownload: true, logger: () => undefined })
})

afterAll(() => llama.dispose())

/** Which of the texts the runtime would let a model write. */
async function permitted(schema: unknown, texts: readonly string[]): Promise<string[]> {
  const rules = new JsonGrammar()
  const grammar = await llama.createGrammar({ grammar: rules.text(rules.schema(schema, 'schema')) })
  return texts.filter((text) => (grammar as unknown as { _testText(text: string): boolean })._testText(text))
}

const person = {
  type: 'object',
  properties: {
    name: { type: 'string' },
    nickname: { anyOf: [{ type: 'string' }, { type: 'null' }], default: null },
    age: { type: ['integer', 'null'] },
  },
  required: ['name', 'nickname', 'age'],
  additionalProperties: false,
}
const tree = {
  $ref: '#/$defs/Node',
  $defs: {
    Node: {
      type: 'object',
      properties: {
        value: { type: 'integer' },
        next: { anyOf: [{ $ref: '#/$defs/Node' }, { type: 'null' }] },
      },
      required: ['value', 'next'],
    },
  },
}
const shape = {
  discriminator: { propertyName: 'kind' },
  oneOf: [
    {
      type: 'object',
      properties: { kind: { const: 'circle' }, r: { type: 'number' } },
      required: ['kind', 'r'],
    },
    { type: 'object', properties: { kind: { const: 'square' } }, required: ['kind'] },
  ],
}

describe('a grammar of a JSON schema', () => {
  test.each<[string, unknown, string[], string[]]>([
    [
      'anyOf and lists of types: each alternative',
      person,
      ['{"name": "Robert", "nickname": "Bobby", "age": 44}', '{"name":"R","nickname":null,"age":null}'],
      [
        'null',
        '{}',
        '{"name": "R", "nickname": 1, "age": 44}',
        '{"name": "R", "nickname": null, "age": 4.5}',
      ],
    ],
    [
      'a type that is an object or null',
      { type: ['object', 'null'], properties: { a: { type: 'boolean' } }, required: ['a'] },
      ['null', '{"a": true}'],
      ['{}', '{"a": null}', '[]'],
    ],
    [
      'properties without a type: an object',
      { properties: { a: { type: 'integer' } }, required: ['a'] },
      ['{"a": 1}'],
      ['null', '{}', '{"a": "1"}'],
    ],
    [
      'no keywords: any value',
      {},
      ['null', '1.5e3', '"a"', '[1, {"b": []}]', '{"a": {"b": [true]}}'],
      ['', '{', 'a'],
    ],
    ['true: any value', { type: 'array', items: true }, ['[]', '["a", {"b": null}]'], ['{}', '[']],
    [
      'a free object',
      { type: 'object' },
      ['{}', '{"a": 1, "b": {"c": ["d"]}}'],
      ['null', '[]', '{"a"}', '{"a": 1,}'],
    ],
    ['an object without properties', { type: 'object', properties: {} }, ['{}'], ['{"a": 1}', 'null']],
    [
      'optional properties, in order, one that may be null always',
      {
        type: 'object',
        properties: {
          a: { type: 'integer' },
          b: { type: 'integer' },
          c: { type: ['integer', 'null'] },
          d: { type: 'integer' },
        },
        required: ['b'],
      },
      ['{"b": 1, "c": null}', '{"a": 1, "b": 2, "c": 3, "d": 4}', '{"b": 1, "c": 2, "d": 3}'],
      ['{"b": 1}', '{"a": 1, "c": 2}', '{, "b": 1, "c": 2}', '{"b": 1, "a": 1, "c": 2}'],
    ],
    [
      'only optional properties',
      { type: 'object', properties: { a: { type: 'integer' }, b: { type: 'integer' } } },
      ['{}', '{"a": 1}', '{"b": 1}', '{"a": 1, "b": 2}'],
      ['{"a": 1 "b": 2}', '{"c": 1}', '{"a": 1, }'],
    ],
    [
      'further properties, under other names',
      {
        type: 'object',
        properties: { ab: { type: 'integer' }, abc: { type: 'integer' } },
        required: ['ab'],
        additionalProperties: { type: 'string' },
      },
      ['{"ab": 1}', '{"ab": 1, "abc": 2, "abcd": "x", "a": "y"}', '{"ab": 1, "é": "z"}'],
      [
        '{"ab": 1, "x": 2}',
        '{"ab": 1, "ab": "x"}',
        '{"ab": 1, "abc": "x"}',
        String.raw`{"ab": 1, "a\u0062": "x"}`,
      ],
    ],
    [
      'counts of properties',
      { type: 'object', additionalProperties: { type: 'integer' }, minProperties: 1, maxProperties: 2 },
      ['{"a": 1}', '{"a": 1, "b": 2}'],
      ['{}', '{"a": 1, "b": 2, "c": 3}'],
    ],
    [
      'required properties that it does not describe',
      {
        type: 'object',
        required: ['a'],
        properties: { b: { type: 'null' } },
        additionalProperties: { type: 'integer' },
      },
      ['{"b": null, "a": 1}', '{"b": null, "a": 1, "c": 2}'],
      ['{"b": null}', '{"b": null, "a": null}'],
    ],
    [
      'references, also to themselves',
      tree,
      ['{"value": 1, "next": null}', '{"value": 1, "next": {"value": 2, "next": null}}'],
      ['{"value": 1}', '{"value": 1, "next": {}}'],
    ],
    [
      'alternatives that a property tells apart',
      shape,
      ['{"kind": "circle", "r": 2.5}', '{"kind": "square"}'],
      ['{"kind": "circle"}', '{"kind": "triangle"}'],
    ],
    [
      'allOf of objects',
      {
        allOf: [
          { $ref: '#/definitions/base' },
          { type: 'object', properties: { b: { type: 'integer' } }, required: ['b'] },
        ],
        definitions: { base: { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] } },
      },
      ['{"a": 1, "b": 2}'],
      ['{"a": 1}', '{"b": 2}'],
    ],
    [
      'alternatives beside keywords of both',
      {
        type: 'object',
        properties: { a: { type: 'integer' }, b: { type: 'integer' } },
        anyOf: [{ required: ['a'] }, { required: ['b'] }],
      },
      ['{"a": 1}', '{"b": 1}', '{"a": 1, "b": 2}'],
      ['{}'],
    ],
    [
      'constants of the type only',
      { type: ['string', 'null'], enum: ['a "b"', 'é\n', 3, null, { c: [1] }] },
      ['"a \\"b\\""', '"é\\n"', 'null'],
      ['3', '{"c":[1]}', '"a"'],
    ],
    ['a constant object', { const: { c: [1, 'x'] } }, ['{"c":[1,"x"]}'], ['{"c":[1]}']],
    [
      'lengths of lists and texts',
      { type: 'array', items: { type: 'string', minLength: 1, maxLength: 2 }, minItems: 1, maxItems: 2 },
      ['["a"]', '["é", "\\n\\n"]'],
      ['[]', '[""]', '["abc"]', '["a", "b", "c"]'],
    ],
    [
      'tuples, also of older drafts',
      {
        anyOf: [
          { prefixItems: [{ type: 'integer' }, { type: 'null' }] },
          { items: [{ type: 'string' }], additionalItems: false },
        ],
      },
      ['[1, null]', '["a"]'],
      ['[1]', '[1, null, 2]', '["a", "b"]'],
    ],
    [
      'whole numbers within limits',
      { type: 'integer', minimum: -12, exclusiveMaximum: 105 },
      ['-12', '-9', '-1', '0', '7', '42', '99', '100', '104'],
      ['-13', '105', '1000', '07', '1.0', '-20'],
    ],
    [
      'the limits that zod gives whole numbers',
      { type: 'integer', minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER },
      ['0', '-9007199254740991', '9007199254740991', '8999999999999999'],
      ['9007199254740992', '-9007199254740992', '10000000000000000'],
    ],
    [
      'numbers within limits',
      { type: 'number', exclusiveMinimum: 0, maximum: 20 },
      ['0.001', '1', '1.5', '19.99', '20', '20.0'],
      ['0', '0.0', '-1', '20.1', '21', '100'],
    ],
    [
      'negative numbers',
      { type: 'number', minimum: -2, exclusiveMaximum: -1 },
      ['-2', '-1.5', '-1.01'],
      ['-1', '-2.5', '0', '1.5'],
    ],
    [
      'formats',
      {
        type: 'array',
        prefixItems: [
          { type: 'string', format: 'date-time' },
          { type: 'string', format: 'uuid' },
          { type: 'string', format: 'email' },
          { type: 'string', format: 'uri', minLength: 1, maxLength: 2083 },
          { type: 'string', format: 'date' },
        ],
      },
      [
        '["2024-02-29T23:59:59.5Z", "123e4567-e89b-12d3-a456-426614174000", "a.b@c.example.org", "https://a.org/x?y=1", "2023-12-31"]',
      ],
      [
        '["2024-02-29T23:59:59Z", "1", "a@b.org", "https://a.org", "2023-12-31"]',
        '["2024-02-29T23:59:59Z", "123e4567-e89b-12d3-a456-426614174000", "a@b.org", "https://a.org", "2023-02-29"]',
      ],
    ],
  ])('permits what it means: %s', async (_what, schema, right, wrong) => {
    expect(await permitted(schema, [...right, ...wrong])).toEqual(right)
  })

  test.each<[unknown, string]>([
    [{ type: 'object', properties: { a: { type: 'string', pattern: '^a' } } }, 'schema.properties.a.pattern'],
    [{ anyOf: [{ type: 'null' }, { not: {} }] }, 'schema.anyOf[1].not'],
    [{ type: 'text' }, 'schema.type'],
    [{ type: 'array', items: { type: 'integer', multipleOf: 2 } }, 'schema.items.multipleOf'],
    [{ type: 'array', uniqueItems: true }, 'schema.uniqueItems'],
    [{ type: 'array', minItems: 3, maxItems: 2 }, 'schema.maxItems'],
    [{ type: 'string', minLength: 100_000 }, 'schema.minLength'],
    [{ type: 'string', format: 'regex' }, 'schema.format'],
    [{ type: 'number', minimum: 0.5 }, 'schema.minimum'],
    [{ type: 'integer', minimum: 3, maximum: 2 }, 'schema'],
    [{ type: 'object', required: ['a'], properties: {}, additionalProperties: false }, 'schema.required'],
    [{ type: 'object', patternProperties: {} }, 'schema.patternProperties'],
    [{ type: 'object', properties: { a: false } }, 'schema.properties.a'],
    [{ type: 'object', properties: [] }, 'schema.properties'],
    [{ $ref: '#/$defs/None' }, 'schema.$ref'],
    [{ $ref: 'https://example.org/schema' }, 'schema.$ref'],
    [{ enum: [] }, 'schema.enum'],
    [{ type: 'integer', enum: ['a'] }, 'schema.enum'],
    [{ enum: [1], minimum: 0 }, 'schema.minimum'],
    [{ const: 1, enum: [2] }, 'schema.enum'],
    [{ propertyNames: { type: 'integer' } }, 'schema.propertyNames'],
    [{ propertyNames: false }, 'schema.propertyNames'],
    [{ anyOf: [] }, 'schema.anyOf'],
    [{ type: 'string', anyOf: [{ type: 'integer' }] }, 'schema.anyOf[0].type'],
    [{ allOf: [{ additionalProperties: false }, { properties: { a: {} } }] }, 'schema.additionalProperties'],
    [{ allOf: [{ $ref: '#' }, { type: 'object' }] }, 'schema'],
    [
      { $defs: { A: { $ref: '#/$defs/B', type: 'null' }, B: { $ref: '#/$defs/A' } }, $ref: '#/$defs/A' },
      'schema.$defs.A',
    ],
    [
      {
        $ref: '#/$defs/A',
        $defs: {
          A: {
            anyOf: [
              { $ref: '#/$defs/A', type: 'object' },
              { $ref: '#/$defs/A', minProperties: 1 },
            ],
          },
        },
      },
      'schema.$defs.A',
    ],
  ])('is refused with the place of what it cannot hold: %j', async (schema, param) => {
    await expect(permitted(schema, [])).rejects.toMatchObject({
      code: 400,
      param: expect.stringContaining(param),
      message: expect.stringContaining(`This JSON schema is not supported: ${param}`),
    })
  })

  test('that only refers to itself is none', async () => {
    const schema = { $ref: '#/$defs/A', $defs: { A: { anyOf: [{ $ref: '#/$defs/A' }, { type: 'null' }] } } }
    await expect(permitted(schema, [])).rejects.toThrow('parse grammar')
  })

  test('may have many repetitions', async () => {
    const texts = Array.from({ length: 90 }, (_, i) => [`p${i}`, { type: 'string', maxLength: 900 + i }])
    const schema = { type: 'object', properties: Object.fromEntries(texts) as object }
    expect(await permitted(schema, ['{"p7": "x"}', '{"p": ""}'])).toEqual(['{"p7": "x"}'])
  })
})
