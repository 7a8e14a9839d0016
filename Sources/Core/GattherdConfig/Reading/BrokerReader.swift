/// Reads the keys of a section that describe the connection to an MQTT broker.
struct BrokerReader {
    /// The section's name in errors.
    let title: String
    let resolve: (Located<String>) -> Located<String>

    /// Reads `url`, `version`, `client_id`, the credentials and `tls`; `nil` without a valid URL.
    func settings(_ section: SectionReader, gateway: String) -> MQTTSettings? {
        let instead = "write username and password_file instead of user:password@"
        let broker = section.url(.broker, insteadOfPassword: instead)
        var settings = MQTTSettings(
            broker: broker?.value ?? BrokerAddress(host: "localhost", port: 1883),
            gateway: gateway
        )
        section.read("version", .choice("a version of MQTT"), into: &settings.version)
        section.read("client_id", Self.clientID, into: &settings.clientID)
        credentials(section, &settings)
        tls(section, broker, &settings)
        return broker == nil ? nil : settings
    }

    /// The grammar of client identifiers; more than the 23 bytes that every broker must accept.
    private static var clientID: ConfigGrammar<String> {
        ConfigGrammar(noun: "a client identifier", advice: "use 1 to 128 printable characters") { text in
            let isPrintable = text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F }
            return (1...128).contains(text.utf8.count) && isPrintable ? text : nil
        }
    }

    private func credentials(_ section: SectionReader, _ settings: inout MQTTSettings) {
        let instead = "put it into a file that only gattherd may read, and write password_file"
        section.forbid("password", .secret(key: "password", instead: instead))
        settings.username = section.value("username", .text)?.value
        settings.passwordFile = section.value("password_file", .path).map { resolve($0) }
        if section.place(of: "username") == nil, let place = section.place(of: "password_file") {
            section.report(.missing(key: "username", section: title, advice: "a password goes with one"), at: place)
        }
    }

    private func tls(_ section: SectionReader, _ broker: Located<BrokerAddress>?, _ settings: inout MQTTSettings) {
        section.section("tls") { settings.tls = tls($0) }
        if let place = section.place(of: "tls"), let broker, !broker.value.usesTLS {
            let advice = "write mqtts://HOST:8883, or remove 'tls'"
            section.report(.conflict("'tls' needs a broker's URL that begins with mqtts://; \(advice)"), at: place)
        }
    }

    private var serverName: ConfigGrammar<String> {
        ConfigGrammar(noun: "a name", advice: "write the name or the address that the broker's certificate is for") {
            text in
            let isIPv6 = text.count { $0 == ":" } > 1 && text.allSatisfy { $0.isHexDigit || ":.".contains($0) }
            return isIPv6 || HostAndPort.read(text[...]).map { $0.port == nil } ?? false ? text : nil
        }
    }

    private func tls(_ section: SectionReader) -> MQTTSettings.TLS {
        var tls = MQTTSettings.TLS()
        tls.ca = section.value("ca", .path).map { resolve($0) }
        tls.certificate = section.value("certificate", .path).map { resolve($0) }
        tls.key = section.value("key", .path).map { resolve($0) }
        tls.serverName = section.value("server_name", serverName)?.value
        section.read("min_version", .choice("a version of TLS"), into: &tls.minimumVersion)
        section.requireBoth("certificate", "key", in: "'tls'")
        return tls
    }
}
