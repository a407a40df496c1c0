import type { Job } from "./job.ts";

export type Language = Job["language"];

/** The observations in a video. */
export interface Seen {
  /** Whether fluid leaks. */
  readonly leak: boolean;
  /** Knocks per second. */
  readonly knocks: number;
}

const makes: Readonly<Record<string, string>> = { Toyota: "丰田", Camry: "凯美瑞" };

/** The name of a make or a model in Chinese, and back. */
const inChinese = (name: string): string => makes[name] ?? name;
export const fromChinese = (name: string): string =>
  Object.entries(makes).find(([, chinese]) => chinese === name)?.[0] ?? name;

interface Sentences {
  readonly whatIsWrong: string;
  readonly sendVideo: string;
  readonly sendAnother: string;
  howLong(seen: Seen): string;
  readonly whichCar: string;
  done(model: string, report: string): string;
  inStock(part: string, vehicle: Job["vehicle"]): string;
}

/** The texts of the agents. */
export const sentences: Readonly<Record<Language, Sentences>> = {
  en: {
    whatIsWrong: "What is wrong with your car?",
    sendVideo: "Can you send me a video of the noise?",
    sendAnother: "I can find neither a noise nor a leak in that video. Can you send me another one?",
    howLong: ({ leak, knocks }) =>
      `I ${leak ? "see some fluid leaking" : `hear it knock ${knocks} times a second`}. How long has this been happening?`,
    whichCar: "Which car is it? I need its year, make, model and number: 2018 Toyota Camry, XYZ123",
    done: (model, report) => `Your ${model} is being repaired. ${report}`,
    inStock: (part, { year, make, model }) => `Do you have part ${part} in stock for a ${make} ${model} ${year}?`,
  },
  zh: {
    whatIsWrong: "您的车出了什么问题?",
    sendVideo: "你能发一段噪音的视频吗?",
    sendAnother: "我在这段视频里没有发现异响或渗漏。你能再发一段吗?",
    howLong: ({ leak, knocks }) =>
      leak ? "我看到有液体渗漏,这种情况出现多久了?" : `我听到每秒 ${knocks} 次的异响,这种情况出现多久了?`,
    whichCar: "是哪辆车?我需要年款、品牌、型号和编号,例如:2018 款丰田凯美瑞,XYZ123",
    done: (model, report) => `您的${inChinese(model)}正在维修。${report}`,
    inStock: (part, { year, make, model }) =>
      `你们有 ${year} 款${inChinese(make)}${inChinese(model)}的零件 ${part} 库存吗?`,
  },
};
