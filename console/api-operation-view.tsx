import type { JSX } from 'preact'
import type { Operation, Parameter, Response, Schema } from '../common/openapi.ts'
import { type ApiOperation, objectIn, typeText } from './api-operations.ts'
import { ScrollTable } from './scroll-table.tsx'

/** One operation: a line, and below it its parameters, body and answers when it is opened. */
export function OperationView({ method, path, operation }: ApiOperation): JSX.Element {
  return (
    <details class="operation">
      <summary>
        <code class="method">{method}</code> <code class="path">{path}</code>{' '}
        <span class="note">{operation.description}</span>
        {operation.deprecated === true && <span class="badge">deprecated</span>}
      </summary>
      <Parameters {...operation} />
      {operation.requestBody !== undefined && <Body {...operation.requestBody} />}
      <Answers {...operation} />
    </details>
  )
}

function Parameters({ parameters }: Operation): JSX.Element | null {
  if (parameters.length === 0) return null
  return (
    <>
      <h3>Parameters</h3>
      <ScrollTable label="Parameters" columns={['Name', 'In', 'Type', 'Default', 'Meaning']}>
        {parameters.map((each) => (
          <ParameterRow key={`${each.in} ${each.name}`} {...each} />
        ))}
      </ScrollTable>
    </>
  )
}

function ParameterRow({ name, in: place, required, description, schema }: Parameter): JSX.Element {
  return (
    <tr>
      <th scope="row">
        <code>{name}</code>
        {required && <small> required</small>}
      </th>
      <td>{place}</td>
      <td>{typeText(schema)}</td>
      <td class="raw">{schema.default ?? '–'}</td>
      <td>
        {description} <Choices {...schema} />
      </td>
    </tr>
  )
}

function Body({ description, required, content }: Response & { required: boolean }): JSX.Element {
  return (
    <>
      <h3>Body {required && <small>required</small>}</h3>
      <p>{description}</p>
      <Contents content={content} />
    </>
  )
}

function Answers({ responses }: Operation): JSX.Element {
  return (
    <>
      <h3>Answers</h3>
      <dl class="answers">
        {Object.entries(responses).map(([status, { description, content }]) => (
          <div key={status}>
            <dt>
              <code>{status}</code>
            </dt>
            <dd>
              {description}
              <Contents content={content} />
            </dd>
          </div>
        ))}
      </dl>
    </>
  )
}

/** Each form that a body may have. */
function Contents({ content = {} }: Pick<Response, 'content'>): JSX.Element {
  return (
    <ul class="contents">
      {Object.entries(content).map(([type, { schema }]) => (
        <li key={type}>
          <code>{type}</code> <span class="note">{typeText(schema)}</span>
          <Fields schema={schema} />
        </li>
      ))}
    </ul>
  )
}

/** The fields of an object, or of the objects of a list, and theirs. */
function Fields({ schema }: { schema: Schema }): JSX.Element | null {
  const { properties = {}, required = [] } = objectIn(schema) ?? {}
  const fields = Object.entries(properties)
  if (fields.length === 0) return null
  return (
    <ul class="fields">
      {fields.map(([name, field]) => (
        <li key={name}>
          <code>{name}</code>{' '}
          <span class="note">
            {typeText(field)}
            {!required.includes(name) && ', optional'}
            {field.default !== undefined && `, default ${field.default}`}
          </span>{' '}
          {field.description} <Choices {...field} />
          <Fields schema={field} />
        </li>
      ))}
    </ul>
  )
}

function Choices({ enum: values }: Schema): JSX.Element | null {
  return values === undefined ? null : <span>One of {values.join(', ')}.</span>
}
