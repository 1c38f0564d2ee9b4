import type { OpenApi, Operation, Response, Schema } from '../../../common/openapi.ts'

/** What is said of an API apart from its words, one line for each parameter, body and response. */
export function outline({ openapi, info, paths }: OpenApi): string[] {
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([method, operation]) => [
      `${method} ${path} ${operation.operationId}${operation.deprecated ? ' deprecated' : ''}`,
      ...details(operation).map((line) => `  ${line}`),
    ]),
  )
  return [`openapi ${openapi}: ${info.title}`, ...operations]
}

function details({ parameters, requestBody, responses }: Operation): string[] {
  return [
    ...parameters.map((each) => `${each.in} ${each.name}${each.required ? '!' : ''}: ${shape(each.schema)}`),
    ...(requestBody === undefined ? [] : [`body${requestBody.required ? '!' : ''} ${bodies(requestBody)}`]),
    ...Object.entries(responses).map(([status, response]) => `${status} ${bodies(response)}`),
  ]
}

function bodies({ content = {} }: Response): string {
  return Object.entries(content)
    .map(([type, { schema }]) => `${type} ${shape(schema)}`)
    .join(', ')
}

/** `{code!: integer, items: [string]}` */
function shape({
  type,
  required = [],
  properties,
  items,
  enum: values,
  default: fallback,
  format,
}: Schema): string {
  const fields = Object.entries(properties ?? {}).map(
    ([name, field]) => `${name}${required.includes(name) ? '!' : ''}: ${shape(field)}`,
  )
  return [
    properties === undefined ? (items === undefined ? type : `[${shape(items)}]`) : `{${fields.join(', ')}}`,
    format === undefined ? '' : ` (${format})`,
    values === undefined ? '' : ` ${values.join('|')}`,
    fallback === undefined ? '' : ` = ${fallback}`,
  ].join('')
}
