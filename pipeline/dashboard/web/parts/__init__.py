"""Parts of pages: tables, links and addresses, words about exchanges and incidents, pictures as a page draws them."""
