// Reads {"noProxy": [...], "urls": [...]} and prints, for each value of NO_PROXY, the URLs without a proxy.
package main

import (
	"encoding/json"
	"log"
	"net/url"
	"os"

	"golang.org/x/net/http/httpproxy"
)

func main() {
	var input struct{ NoProxy, URLs []string }
	if err := json.NewDecoder(os.Stdin).Decode(&input); err != nil {
		log.Fatal(err)
	}
	table := map[string][]string{}
	for _, noProxy := range input.NoProxy {
		config := httpproxy.Config{HTTPProxy: "proxy:1", HTTPSProxy: "proxy:1", NoProxy: noProxy}
		choose := config.ProxyFunc()
		table[noProxy] = []string{}
		for _, text := range input.URLs {
			address, err := url.Parse(text)
			if err != nil {
				log.Fatal(err)
			}
			if proxy, err := choose(address); err != nil {
				log.Fatal(err)
			} else if proxy == nil {
				table[noProxy] = append(table[noProxy], text)
			}
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(table); err != nil {
		log.Fatal(err)
	}
}
