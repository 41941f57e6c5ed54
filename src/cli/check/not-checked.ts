/** Nothing can be said of a rule here; the message is why, without a full stop. */
export class NotChecked extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'NotChecked';
  }
}
