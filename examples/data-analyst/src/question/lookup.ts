import type { ColumnProfile } from "../profile/column.ts";
import type { Profile } from "../profile/profile.ts";
import { askFor } from "./ask.ts";
import { findColumns, isNameOf } from "./columns.ts";
import { isDate, isNumber, mayColour, mayGroup, ref } from "./kinds.ts";
import type { Answers, Ask, Choice, ColumnRef, Filter, Grouping } from "./plan.ts";
import type { Aggregate, MeasureWords } from "./request.ts";
import { timeGrouping, unitOf } from "./time.ts";

/** What to measure: a column, or, without one, the rows. */
export interface Measured {
  readonly column?: ColumnProfile;
  readonly aggregate?: Aggregate | undefined;
}

/** What to group by, with the grouping if the text named one. */
export interface Dimension {
  readonly column: ColumnProfile;
  readonly grouping?: Grouping;
}

const maxChoices = 12;
/** A choice that is not a column. */
const countRows: Choice = { value: " rows", label: "count rows" };

/** Finds the columns that words mean. If the words match none or several, it uses the user's earlier answer, or throws `Asking` to ask. */
export class Lookup {
  readonly columns: readonly ColumnProfile[];
  /** Assumptions that were made on the way. */
  readonly notes: string[] = [];
  readonly #answers: Answers;

  constructor({ columns }: Profile, answers: Answers) {
    this.columns = columns.filter(({ type }) => type !== "empty");
    this.#answers = answers;
  }

  measures({ said, words, aggregate }: MeasureWords): readonly Measured[] {
    const own = this.columns.filter((column) => isNameOf(said, column));
    if (own.length === 1) return own.map((column) => ({ column }));
    if (words === "" && aggregate === "count") return [{ aggregate }];
    const found = words === "" ? [] : findColumns(words, this.columns);
    const numeric = found.filter(isNumber);
    const fit = aggregate !== undefined && aggregate !== "count" && numeric.length > 0 ? numeric : found;
    if (fit.length === 1) return fit.map((column) => ({ column, aggregate }));
    if (fit.length === 0 && aggregate === "count") return this.#rowsOrColumn(said, words);
    const numbers = this.columns.filter(isNumber);
    const pool = fit.length > 0 ? fit : numbers.length > 0 ? numbers : this.columns;
    const prompt =
      fit.length > 0
        ? `Which column do you mean by “${words}”?`
        : words === ""
          ? `The ${said} of which column?`
          : `I find no column like “${words}”. Which one do you mean?`;
    const rows = fit.length === 0 && aggregate === undefined ? [countRows] : [];
    const choices = [...rows, ...pool.slice(0, maxChoices).map(({ name }) => ({ value: name, label: name }))];
    const answer = this.answer(`measure:${said}`, { prompt, choices, several: choices.length > 1 });
    const columns = pool.filter(({ name }) => answer.includes(name)).map((column) => ({ column, aggregate }));
    return answer.includes(countRows.value) ? [{ aggregate: "count" }, ...columns] : columns;
  }

  /** "Number of flights": each row is a flight, unless a column says how many flights it stands for. */
  #rowsOrColumn(said: string, words: string): readonly Measured[] {
    const counter = this.columns.find((column) => isNumber(column) && /^(count|number|n|total)$/i.test(column.name));
    if (counter === undefined) {
      this.notes.push(`I took each row for one of the “${words}”.`);
      return [{ aggregate: "count" }];
    }
    const column: Choice = { value: counter.name, label: `add up ${counter.name}` };
    const prompt = `Shall I count rows, or add up the column ${counter.name}?`;
    const [answer] = this.answer(`count:${said}`, { prompt, choices: [column, countRows] });
    return answer === countRows.value ? [{ aggregate: "count" }] : [{ aggregate: "sum", column: counter }];
  }

  /** Another column, for an aggregate that makes no sense with the given one; `undefined`: the number of rows. */
  insteadOf(column: ColumnProfile, prompt: string): ColumnProfile | undefined {
    const numeric = this.columns.filter(isNumber).slice(0, maxChoices);
    const choices = [countRows, ...numeric.map(({ name }) => ({ value: name, label: name }))];
    const [answer] = this.answer(`aggregate:${column.name}`, { prompt, choices });
    return numeric.find(({ name }) => name === answer);
  }

  dimension(words: string, measures: readonly Measured[]): Dimension {
    const own = this.columns.filter((column) => isNameOf(words, column));
    if (own.length === 1 && own[0] !== undefined) return { column: own[0] };
    const unit = unitOf(words);
    if (unit !== undefined) {
      const dates = this.columns.filter(isDate);
      const named = unit.of === undefined ? dates : findColumns(unit.of, dates);
      const pool = named.length > 0 ? named : dates.length > 0 ? dates : this.groupable(measures);
      const prompt =
        dates.length > 0
          ? `The ${words} of which column?`
          : "I find no dates in this table. By which column shall I group?";
      const column = named.length === 1 && named[0] !== undefined ? named[0] : this.choose(`by:${words}`, prompt, pool);
      return isDate(column) ? { column, grouping: timeGrouping(column, unit.unit, this.notes) } : { column };
    }
    const found = findColumns(words, this.columns);
    const [only] = found;
    if (found.length === 1 && only !== undefined) return { column: only };
    const several = found.length > 1;
    const prompt = several
      ? `By which column do you mean “${words}”?`
      : `I find no column like “${words}”. By which one shall I group?`;
    return { column: this.choose(`by:${words}`, prompt, several ? found : this.groupable(measures)) };
  }

  /** The column whose values get a colour each. */
  series(words: string): ColumnRef {
    const found = findColumns(words, this.columns);
    const fit = found.filter(mayColour);
    const [only] = fit;
    if (fit.length === 1 && only !== undefined) return ref(only);
    const prompt =
      fit.length > 1
        ? `Which column do you mean by “${words}”?`
        : `“${words}” cannot be used to split a chart. Which column shall I take?`;
    return ref(this.choose(`split:${words}`, prompt, fit.length > 0 ? fit : this.columns.filter(mayColour)));
  }

  /** "Seattle", "location is Seattle", "2013": which rows. */
  filter(words: string): Filter {
    const [, name, equals] = /^(.+?) (?:=|==|is|equals) (.+)$/.exec(words) ?? [];
    const value = equals ?? words;
    const columns = name === undefined ? this.columns : findColumns(name, this.columns);
    const written = ({ top }: ColumnProfile): string | undefined =>
      top.find((entry) => entry.value.toLowerCase() === value)?.value;
    const holds = columns.filter((column) => !isNumber(column) && written(column) !== undefined);
    const dates = columns.filter(isDate);
    const [date] = dates;
    if (holds.length === 0 && /^[12]\d{3}$/.test(value) && dates.length === 1 && date?.dates !== undefined) {
      return { kind: "year", column: ref(date), format: date.dates.format, year: Number(value) };
    }
    const certain = name !== undefined && columns.length === 1 ? columns : holds;
    const texts = this.columns.filter((column) => !isNumber(column) && !isDate(column));
    const prompt =
      holds.length > 1
        ? `Which column shall be “${value}”?`
        : `I do not find “${value}” in the table. In which column is it?`;
    const pool = holds.length > 0 ? holds : texts;
    const column =
      certain.length === 1 && certain[0] !== undefined ? certain[0] : this.choose(`filter:${words}`, prompt, pool);
    return { kind: "value", column: ref(column), value: written(column) ?? value };
  }

  /** Columns that can be the axis of a chart, without those that it shows. */
  groupable(measures: readonly Measured[]): readonly ColumnProfile[] {
    const used = new Set(measures.map(({ column }) => column));
    const free = this.columns.filter((column) => !used.has(column));
    const good = free.filter(mayGroup);
    return good.length > 0 ? good : free.length > 0 ? free : this.columns;
  }

  choose(key: string, prompt: string, columns: readonly ColumnProfile[]): ColumnProfile {
    const pool = (columns.length > 0 ? columns : this.columns).slice(0, maxChoices);
    const choices = pool.map(({ name }) => ({ value: name, label: name }));
    const [answer] = this.answer(key, { prompt, choices });
    return pool.find(({ name }) => name === answer) ?? askFor({ key, prompt, choices });
  }

  answer(key: string, ask: Omit<Ask, "key">): readonly string[] {
    return this.#answers[key] ?? askFor({ key, ...ask });
  }
}
