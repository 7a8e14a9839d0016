/// Reads the section `mqtt`.
struct MQTTReader {
    let gateway: String
    let paths: PathRule

    func settings(_ section: SectionReader) -> MQTTSettings? {
        let reader = BrokerReader(title: "'mqtt'") { paths.resolve($0) }
        let broker = reader.settings(section, gateway: gateway)
        // The other keys are read also without a broker, so that all errors are found at once.
        var settings =
            broker ?? MQTTSettings(broker: BrokerAddress(host: "localhost", port: 1883), gateway: gateway)
        section.read("retain", .boolean, into: &settings.retains)
        section.read("controls", .boolean, into: &settings.setsControls)
        section.read("descriptions", .boolean, into: &settings.publishesDescriptions)
        section.read("backlog_rate", .integer(1...1_000_000), into: &settings.backlogRate)
        settings.longestBacklog = section.value(OutputSection.backlogKey, .backlog)?.value
        section.section("publish") { settings.publish = PublishReader.settings($0) }
        section.section("home_assistant") { homeAssistant($0, &settings.homeAssistant) }
        baseTopic(section, &settings)
        return broker == nil ? nil : settings
    }

    private func homeAssistant(_ section: SectionReader, _ settings: inout MQTTSettings.HomeAssistant) {
        section.read("discovery", .boolean, into: &settings.isDiscoverable)
        section.read("prefix", topic, into: &settings.prefix)
        let reader = StatisticsReader { paths.resolve($0) }
        settings.statistics = section.section("statistics") { reader.settings($0) } ?? nil
        if !settings.isDiscoverable, let place = section.place(of: "statistics") {
            section.report(.conflict("'statistics' needs the entities of discovery; write discovery: true"), at: place)
        }
    }

    /// Reads the base topic, which must be apart from Home Assistant's topics.
    private func baseTopic(_ section: SectionReader, _ settings: inout MQTTSettings) {
        guard let base = section.value("base_topic", baseTopic) else { return }
        settings.baseTopic = base.value
        let (own, home) = (base.value + "/", settings.homeAssistant.prefix + "/")
        if own.hasPrefix(home) || home.hasPrefix(own), let place = base.place {
            let reason = "'base_topic' and Home Assistant's '\(settings.homeAssistant.prefix)' are in one tree"
            section.report(.conflict("\(reason); write for example gattherd/\(gateway)"), at: place)
        }
    }

    /// The grammar of base topics; some brokers accept no topics of many levels, and no long ones.
    private var baseTopic: ConfigGrammar<String> {
        let advice = "write 1 to 8 levels such as site-a/\(gateway), without '#', '+', empty levels and a first '$'"
        return ConfigGrammar(noun: "a base topic", advice: advice) { text in
            let levels = text.split(separator: "/", omittingEmptySubsequences: false)
            let isPlain = !text.unicodeScalars.contains {
                $0.value < 0x20 || (0x7F...0x9F).contains($0.value) || "#+".unicodeScalars.contains($0)
            }
            let isShort = levels.count <= 8 && text.utf8.count <= 200
            return isPlain && isShort && !text.hasPrefix("$") && !levels.contains("") ? text : nil
        }
    }

    private var topic: ConfigGrammar<String> {
        ConfigGrammar(noun: "a topic", advice: "use no '#', no '+' and no '/' at an end") { text in
            let isPlain = !text.utf8.contains { $0 < 0x20 || "#+".utf8.contains($0) }
            return !text.isEmpty && isPlain && !text.hasPrefix("/") && !text.hasSuffix("/") ? text : nil
        }
    }
}
