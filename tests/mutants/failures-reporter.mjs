import { appendFileSync } from 'node:fs'

/**
 * A jest reporter that writes the full name of each test that fails into $FAILED_TESTS_FILE at once, as a
 * line
 * of JSON: a run that is ended before it is done writes no report.
 */
export default class FailuresReporter {
  onTestCaseResult(_test, { status, fullName }) {
    if (status === 'failed') appendFileSync(process.env.FAILED_TESTS_FILE, `${JSON.stringify(fullName)}\n`)
  }
}
