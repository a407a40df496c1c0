import type { Plan } from "./plan.ts";

type Part = keyof Plan["budget"];

interface Sentences {
  readonly whichAirport: string;
  readonly whichStation: string;
  readonly reallyCar: string;
  looking(part: Part, city: string): string;
  tooExpensive(part: Part, dollars: number): string;
  flight(number: string, from: string, to: string, month: string): string;
  hotel(place: string, room: number, days: number): string;
  car(days: number): string;
  readonly noCar: string;
  trip(options: readonly { readonly what: string }[], dollars: number): string;
}

const parts: Readonly<Record<Part, string>> = { flight: "航班", hotel: "酒店", car: "租车" };
const cities: Readonly<Record<string, string>> = { London: "伦敦", Lisbon: "里斯本", Paris: "巴黎", Oslo: "奥斯陆" };

/** The texts of the agents. */
export const sentences: Readonly<Record<Plan["language"], Sentences>> = {
  en: {
    whichAirport: "Which airport do you want to leave from?",
    whichStation: "Which Tube station do you want to be near?",
    reallyCar: "Most people do not rent a car in London. Do you really want one?",
    looking: (part, city) => `Looking for a ${part} in ${city}`,
    tooExpensive: (part, dollars) => `No ${part} for ${dollars} dollars.`,
    flight: (number, from, to, month) => `Flight ${number} from ${from} to ${to} in ${month}`,
    hotel: (place, room, days) => `Hotel ${place}, room ${room}, for ${days} days`,
    car: (days) => `A car for ${days} days`,
    noCar: "No car",
    trip: (options, dollars) => [...options.map(({ what }) => `${what}.`), `${dollars} dollars in all.`].join(" "),
  },
  zh: {
    whichAirport: "你要从哪家航空公司出发?",
    whichStation: "你想靠近伦敦的哪个地铁站?",
    reallyCar: "大多数人在伦敦不租车,你确定要租车吗?",
    looking: (part, city) => `正在查找${cities[city] ?? city}的${parts[part]}`,
    tooExpensive: (part, dollars) => `${dollars} 美元内没有${parts[part]}。`,
    flight: (number, from, to, month) => `航班 ${number}(${from}),${month}前往${cities[to] ?? to}`,
    hotel: (place, room, days) => `${cities[place] ?? place}酒店,${room} 号房,${days} 天`,
    car: (days) => `租车 ${days} 天`,
    noCar: "不租车",
    trip: (options, dollars) => `${options.map(({ what }) => `${what}。`).join("")}共 ${dollars} 美元。`,
  },
};
