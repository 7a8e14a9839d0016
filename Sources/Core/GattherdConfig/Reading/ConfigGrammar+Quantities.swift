import GattherdModel
import GattherdYAML

extension ConfigGrammar where Value == Duration {
    /// The grammar of a duration in a range, for example `1.5s`.
    package static func duration(_ range: ClosedRange<Duration>) -> Self {
        let (least, most) = (QuantityGrammar.text(range.lowerBound), QuantityGrammar.text(range.upperBound))
        let examples: [(text: String, value: Duration)] = [
            ("30s", .seconds(30)), ("5m", .seconds(300)), ("500ms", .milliseconds(500)),
        ]
        let example = examples.first { range.contains($0.value) }?.text ?? most
        let advice = "write a number and its unit, for example \(example)"
        return ConfigGrammar(noun: "a duration from \(least) to \(most)", advice: advice, shape: .duration) { text in
            QuantityGrammar.duration(text).flatMap { range.contains($0) ? $0 : nil }
        }
    }
}

extension ConfigGrammar where Value == SilenceLimit {
    static var silence: Self {
        let duration = ConfigGrammar<Duration>.duration(.seconds(1) ... .seconds(30 * 86_400))
        let advice = duration.advice + ", or learned or never"
        return ConfigGrammar(noun: "a limit of silence", advice: advice, shape: .durationOr(["learned", "never"])) {
            text in
            switch text {
            case "learned": .learned
            case "never": .never
            default: duration.read(text).map { .stated($0) }
            }
        }
    }
}

extension ConfigGrammar where Value == RetentionPeriod {
    static var retention: Self {
        let advice = #"write for example "12h", "30d", "1y" or "forever""#
        return ConfigGrammar(noun: "a time to keep", advice: advice, shape: .durationOr(["forever"])) { text in
            if text == "forever" { return .forever }
            return QuantityGrammar.duration(text).flatMap { $0 > .zero ? .atLeast($0) : nil }
        }
    }
}

extension ConfigGrammar where Value == UInt64 {
    package static var size: Self {
        let advice = #"write for example "500MiB" or "2GiB", at least 1MiB"#
        return ConfigGrammar(noun: "a size", advice: advice, shape: .size) { text in
            QuantityGrammar.size(text).flatMap { $0 >= 1 << 20 ? $0 : nil }
        }
    }
}
