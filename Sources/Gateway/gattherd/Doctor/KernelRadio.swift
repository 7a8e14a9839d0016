import FoundationEssentials
import GattherdGateway

/// The kernel's view of Bluetooth radios.
enum KernelRadio {
    /// The kernel's Bluetooth adapters, for example `hci0`.
    static func kernelAdapters(in folder: String = "/sys/class/bluetooth") -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return names.filter { $0.hasPrefix("hci") && !$0.contains(":") }.sorted()
    }

    /// Switches of Bluetooth radios that are off, by software or by hand.
    static func blocks(in folder: String = "/sys/class/rfkill") -> [DoctorFinding] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder))?.sorted() ?? []
        let radios = names.map { Switch(folder + "/" + $0) }.filter { $0.type == "bluetooth" }
        guard !radios.isEmpty else { return [] }
        let findings = radios.compactMap(\.finding)
        return findings.isEmpty ? [.good("rfkill", "no Bluetooth radio is blocked")] : findings
    }

    private struct Switch {
        private let folder: String

        init(_ folder: String) {
            self.folder = folder
        }

        var type: String { text("type") }

        var finding: DoctorFinding? {
            if text("hard") == "1" {
                let advice = "use the switch or key of the machine, or its firmware's setup"
                return DoctorFinding("rfkill", .error, "\(text("name")) is switched off by hand", remedy: advice)
            }
            guard text("soft") == "1" else { return nil }
            return DoctorFinding("rfkill", .error, "\(text("name")) is blocked", remedy: "rfkill unblock bluetooth")
        }

        private func text(_ name: String) -> String {
            let data = FileManager.default.contents(atPath: folder + "/" + name) ?? Data()
            return String(decoding: data.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
        }
    }
}
