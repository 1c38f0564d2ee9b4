import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { loadService } from '../../../frontend/edge/grpc/definitions.ts'
import { describeFiles } from '../../../frontend/edge/grpc/reflection.ts'
import { FileDescriptorProto } from '../../support/reflection.ts'
import { tempDir } from '../../support/temp.ts'

const SHARED = `syntax = "proto3";
package a.shared;
message Unit {}
enum Kind { NONE = 0; }
`
const OTHER = `syntax = "proto3";
package b.other;
import "google/protobuf/any.proto";
message Unit { google.protobuf.Any any = 1; }
`
/** Types of every place that a name can come from, and names of maps that protoc changes. */
const OWN = `syntax = "proto3";
package a.own;
import "shared.proto";
import "other.proto";
message Whole {}
message Request {
  message Unit { Kind kind = 1; }
  enum Kind { NONE = 0; }
  map<string, Unit> some_odd_inputs = 1;
  map<int32, a.shared.Kind> kinds = 2;
  Unit nested = 3;
  a.own.Whole own = 4;
  a.shared.Unit shared = 5;
  b.other.Unit other = 6;
  string text = 7;
  map<string, bytes> _odd__case1x_y = 8;
}
service Service { rpc Do(stream Request) returns (b.other.Unit); }
`

interface Message {
  name: string
  field: { name: string; typeName: string }[]
  nestedType: Message[]
}

/** Each field with its type, and that of the fields of nested messages. */
function typesOf({ name, field, nestedType }: Message): string[] {
  return [
    ...field.map((each) => `${name}.${each.name}: ${each.typeName}`),
    ...nestedType.flatMap((nested) => typesOf(nested).map((type) => `${name}.${type}`)),
  ]
}

test('files are described as protoc describes them: imports, full names of types, and entries of maps', () => {
  const folder = tempDir()
  for (const [name, text] of Object.entries({ shared: SHARED, other: OTHER, own: OWN }))
    writeFileSync(join(folder, `${name}.proto`), text)
  const { descriptors } = loadService('own.proto', 'a.own.Service', { folder })
  const files = new Map(
    describeFiles(descriptors).map((file) => [
      file.package,
      FileDescriptorProto.decode(file.bytes) as unknown as {
        dependency: string[]
        messageType: Message[]
        service: unknown[]
      },
    ]),
  )
  const own = files.get('a.own')!
  expect(own.dependency.toSorted()).toEqual(['a_shared.proto', 'b_other.proto'])
  expect(own.messageType.flatMap(typesOf)).toEqual([
    'Request.some_odd_inputs: .a.own.Request.SomeOddInputsEntry',
    'Request.kinds: .a.own.Request.KindsEntry',
    'Request.nested: .a.own.Request.Unit',
    'Request.own: .a.own.Whole',
    'Request.shared: .a.shared.Unit',
    'Request.other: .b.other.Unit',
    'Request.text: ',
    'Request._odd__case1x_y: .a.own.Request.OddCase1xYEntry',
    'Request.SomeOddInputsEntry.key: ',
    'Request.SomeOddInputsEntry.value: .a.own.Request.Unit',
    'Request.KindsEntry.key: ',
    'Request.KindsEntry.value: .a.shared.Kind',
    'Request.OddCase1xYEntry.key: ',
    'Request.OddCase1xYEntry.value: ',
    'Request.Unit.kind: .a.own.Request.Kind',
  ])
  expect(own.service).toMatchObject([
    {
      method: [
        { name: 'Do', inputType: '.a.own.Request', outputType: '.b.other.Unit', clientStreaming: true },
      ],
    },
  ])
  const other = files.get('b.other')!
  expect(other.dependency).toEqual(['google_protobuf.proto'])
  expect(other.messageType.flatMap(typesOf)).toEqual(['Unit.any: .google.protobuf.Any'])
  expect(files.get('a.shared')!.dependency).toEqual([])
})
