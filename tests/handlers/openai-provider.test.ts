import { describe, expect, test } from '@jest/globals'
import { readProvider } from '../../handlers/openai-provider/settings.ts'

const ENV = { OPENAI_API_KEY: 'one', AZURE_OPENAI_API_KEY: 'two', OTHER: 'three' }

/** Settings as Seldon's LLM module writes them. */
const seldon = (config: object, more: object = {}) => ({
  modelSettings: { parameters: { extra: { provider_id: 'openai', config, ...more } } },
})
const read = (modelConfig: Record<string, unknown>) => readProvider({ modelConfig }, ENV)

describe('the settings of Seldon’s API runtime', () => {
  test('name model and provider; model-config.yaml wins', () => {
    const given = seldon({ model_id: 'gpt', model_type: 'chat.completions', odd: 1 })
    expect(read(given)).toMatchObject({
      baseUrl: 'https://api.openai.com/v1',
      query: '',
      model: 'gpt',
      key: 'one',
      keyHeader: 'authorization',
      warnings: ['odd has no effect in the settings of the OpenAI runtime'],
    })
    const handler = { model_id: 'own', base_url: 'http://here/v1/', api_key_variable: 'OTHER' }
    expect(read({ ...given, handler })).toMatchObject({
      model: 'own',
      baseUrl: 'http://here/v1',
      key: 'three',
    })
  })

  test('may name a deployment at Azure, with a key or a token', () => {
    const azure = {
      api_type: 'azure',
      azure_endpoint: 'https://x.azure.com/',
      azure_deployment: 'd 1',
      api_version: 'v',
    }
    expect(read(seldon(azure))).toMatchObject({
      baseUrl: 'https://x.azure.com/openai/deployments/d%201',
      query: '?api-version=v',
      key: 'two',
      keyHeader: 'api-key',
    })
    expect(read(seldon({ ...azure, api_type: 'azure_ad', azure_ad_token: 't' }))).toMatchObject({
      key: 't',
      keyHeader: 'authorization',
    })
  })

  test('of another api_type have no effect, which is said', () => {
    const open = { azure_deployment: 'd', api_version: 'v', azure_ad_token: 't', odd: null }
    expect(read(seldon(open)).warnings).toEqual([
      'azure_deployment has no effect with api_type open_ai',
      'api_version has no effect with api_type open_ai',
      'azure_ad_token has no effect with api_type open_ai',
    ])
    const azure = {
      azure_endpoint: 'https://x',
      azure_deployment: 'd',
      api_version: 'v',
      azure_ad_token: 't',
    }
    expect(read(seldon({ ...azure, api_type: 'azure' })).warnings).toEqual([
      'azure_ad_token has no effect with api_type azure',
    ])
    expect(read(seldon({ ...azure, api_type: 'azure_ad' })).warnings).toEqual([])
  })

  test.each([
    [seldon({}, { provider_id: 'gemini' }), 'provider gemini is not supported'],
    [seldon({ model_type: 'images.generations' }), 'model_type must be one of'],
    [seldon({ api_type: 'aws' }), 'api_type must be'],
    [seldon({ api_type: 'azure' }), 'azure_endpoint is required'],
    [
      seldon({ api_type: 'azure', azure_endpoint: 'https://x', azure_deployment: 'd' }),
      'api_version is required',
    ],
    [
      seldon({ api_type: 'azure', azure_endpoint: 'https://x', base_url: 'https://y' }),
      'base_url is not supported with api_type azure',
    ],
    [seldon({ azure_endpoint: 'https://x' }), 'azure_endpoint is not supported with api_type open_ai'],
    [seldon({ api_key: 'sk' }), 'api_key is not supported in a file'],
    [seldon({}, { prompt_utils: {} }), 'prompt_utils is not supported'],
    [seldon({ base_url: 'ftp://x' }), 'base_url must be'],
    [seldon({ model_id: 1 }), 'model_id must be a non-empty string'],
  ])('that cannot be followed are refused: %j', (config, message) => {
    expect(() => read(config)).toThrow(message)
  })
})
