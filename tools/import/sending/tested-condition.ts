import { Failure } from '../../../src/cli/shared/failure.ts';
import { jsonObject } from '../../../src/client/plant-store-error.ts';
import type { Transport } from '../../../src/client/transport.ts';
import { ERRORS } from '../../../src/core/contract/errors.ts';
import { REVISION_TEST } from '../../../src/core/revision-condition.ts';

/** A body without a plant, so that nothing is stored if the service does not get the header. */
const NO_PLANT = '{}';

/**
 * Tests with a first request whether If-Plant-Revision arrives at the service and is obeyed. The
 * request has an invalid value of this header, and no plant. A response about the plant shows that
 * the header was ignored, so each plant could be replaced. Requests wait for the test.
 *
 * | response to the test | what the first requests get |
 * |---|---|
 * | error 40000, about the header | their own responses; nothing is tested again |
 * | an error of the body | the failure that the header is ignored |
 * | any other one, or none | this response, since it is not about a plant; a retry tests again |
 */
export function testedCondition(transport: Transport): Transport {
  let isObeyed = false;
  let test: ReturnType<Transport> | undefined;
  return (request, signal) => {
    if (isObeyed) return transport(request, signal);
    const headers = { ...request.headers, 'If-Plant-Revision': REVISION_TEST };
    test ??= transport({ ...request, headers, body: NO_PLANT }, signal).finally(() => {
      test = undefined;
    });
    return test.then(response => {
      const { error } = jsonObject(response.body);
      if (error === ERRORS.notNewPlant.number || error === ERRORS.notJson.number)
        throw ignoredHeader('the service accepts a request with an invalid If-Plant-Revision');
      isObeyed ||= error === ERRORS.badHttp.number;
      return isObeyed ? transport(request, signal) : response;
    });
  };
}

/** @param symptom what shows that the header is ignored */
export function ignoredHeader(symptom: string): Failure {
  return new Failure(
    `${symptom}, so the import ended; the service, or a gateway in front of it, ignores this header: update the ` +
      'service, or make the gateway forward the header; --replace imports without it',
  );
}
