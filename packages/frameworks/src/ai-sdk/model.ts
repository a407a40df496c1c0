import type { LanguageModel } from "ai";
import type { Turn } from "@parley/server";
import type { Budget } from "../shared/budget.ts";
import { durableModels as durableModelsOf, type AnyModel } from "../shared/model.ts";
import { aiSDK } from "./peer.ts";
import type { DurableModel } from "./port.ts";

/** Makes the durable models of one turn. A model may be given by id. */
export function durableModels(turn: Turn, budget: Budget): (model: LanguageModel) => DurableModel {
  const durable = durableModelsOf(turn, budget);
  return (model) => durable(modelOf(model)) as unknown as DurableModel;
}

function modelOf(model: LanguageModel): AnyModel {
  const provider = globalThis.AI_SDK_DEFAULT_PROVIDER ?? aiSDK().gateway;
  const found = typeof model === "string" ? provider.languageModel(model) : model;
  return found as unknown as AnyModel;
}
