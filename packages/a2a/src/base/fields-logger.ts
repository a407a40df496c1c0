import type { LogFields, Logger } from "./index.ts";

/** A logger that adds fields to each line. Fields of the line itself take precedence. */
export class FieldsLogger implements Logger {
  readonly #logger: Logger;
  readonly #fields: () => LogFields;

  /** `fields`: called for each line. */
  constructor(logger: Logger, fields: () => LogFields) {
    this.#logger = logger;
    this.#fields = fields;
  }

  debug(message: string, fields?: LogFields): void {
    this.#logger.debug(message, { ...this.#fields(), ...fields });
  }

  info(message: string, fields?: LogFields): void {
    this.#logger.info(message, { ...this.#fields(), ...fields });
  }

  warn(message: string, fields?: LogFields): void {
    this.#logger.warn(message, { ...this.#fields(), ...fields });
  }

  error(message: string, fields?: LogFields): void {
    this.#logger.error(message, { ...this.#fields(), ...fields });
  }
}
