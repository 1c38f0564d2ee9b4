/** The management API, called with the token that the user signed in with. It is kept in memory only. */
export class Api {
  readonly #token: string | undefined

  /** Undefined: the server asks for none. */
  constructor(token: string | undefined) {
    this.#token = token
  }

  /** The answer of a management call as text. @throws ApiError when it is no success */
  async call(method: string, path: string): Promise<string> {
    const response = await this.open(method, path)
    return messageOf(await response.text())
  }

  /**
   * A request of the inference API, whatever its answer is. Redirects are not followed: a handler could send
   * the request, with the token, to the management API.
   * @param path of the inference API
   * @param token undefined: the one that the user signed in with
   */
  infer(path: string, request: RequestInit, token: string | undefined): Promise<Response> {
    const headers = new Headers(request.headers)
    const known = token ?? this.#token
    if (known !== undefined) headers.set('authorization', `Bearer ${known}`)
    const options = { ...request, headers, credentials: 'omit', redirect: 'manual' } as const
    return fetch(`/console/play${path}`, options)
  }

  /** Whether the user signed in. */
  get hasToken(): boolean {
    return this.#token !== undefined
  }

  /** The body is still to be read. @throws ApiError when the answer is no success */
  async open(method: string, path: string, signal?: AbortSignal): Promise<Response> {
    const headers: Record<string, string> =
      this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }
    const response = await fetch(path, { method, headers, signal: signal ?? null, credentials: 'omit' })
    if (!response.ok)
      throw new ApiError(response.status, await response.text(), response.headers.get('x-hint'))
    return response
  }
}

/** An answer that is no success. */
export class ApiError extends Error {
  readonly status: number

  /** @param hint what to do about it, from the server */
  constructor(status: number, body: string, hint: string | null) {
    const message = messageOf(body) || `The server answered ${status}`
    super(hint === null ? message : `${message} (${hint})`)
    this.status = status
  }

  /** The server wants a token, or another one. TorchServe's answer to a missing one is 400. */
  get asksForToken(): boolean {
    return this.status === 401 || this.status === 403 || this.status === 400
  }
}

/** What a management answer says: its `message` or `status`, where it is JSON with one. */
function messageOf(body: string): string {
  try {
    const answer = JSON.parse(body) as { message?: unknown; status?: unknown } | null
    if (typeof answer?.message === 'string') return answer.message
    if (typeof answer?.status === 'string') return answer.status
  } catch {
    // Plain text.
  }
  return body.trim().slice(0, 2_000)
}

/** Why something failed, for the user. */
export function reasonOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}
