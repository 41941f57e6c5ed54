import { ERRORS, type ErrorName } from '../../contract/errors.ts';
import type { NewPlant, Outcome } from '../../contract/plant.ts';
import type { Exchange } from './exchange.ts';
import { expectErrorShape, expectHeader, expectStatus, mismatch } from './expectations.ts';

/** @throws {Finding} when the answer is not this error of the catalogue */
export function expectError(exchange: Exchange, name: ErrorName): void {
  const { status, number } = ERRORS[name];
  expectStatus(exchange, status);
  const { error } = expectErrorShape(exchange);
  if (error !== number) throw mismatch(exchange, `error ${number}`, `error ${error}`);
}

/** @throws {Finding} when the headers do not prove that the plant was kept, under which revision, and how */
export function expectKept(exchange: Exchange, id: NewPlant['id'], revision: number, outcome: Outcome): void {
  expectStatus(exchange, 200);
  expectHeader(exchange, 'Plant-Id', String(id));
  expectHeader(exchange, 'Plant-Revision', String(revision));
  expectHeader(exchange, 'Plant-Outcome', outcome);
}
