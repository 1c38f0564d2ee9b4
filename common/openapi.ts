/** The parts of OpenAPI 3.0.1 that the API description uses. */

export interface Schema {
  type: string
  description?: string
  format?: string
  default?: string
  enum?: string[]
  items?: Schema
  required?: string[]
  properties?: Record<string, Schema>
}

export interface Parameter {
  in: 'path' | 'query'
  name: string
  description: string
  required: boolean
  schema: Schema
}

export interface Response {
  description: string
  content?: Record<string, { schema: Schema }>
}

export interface Operation {
  /** Its group in the description; absent: the document is about one model. */
  tags?: string[]
  description: string
  operationId: string
  parameters: Parameter[]
  requestBody?: Response & { required: boolean }
  responses: Record<string, Response>
  deprecated?: boolean
}

/** Operations by method, in lower case. */
export type PathItem = Record<string, Operation>

export interface OpenApi {
  openapi: '3.0.1'
  info: { title: string; description?: string; version: string }
  paths: Record<string, PathItem>
}
